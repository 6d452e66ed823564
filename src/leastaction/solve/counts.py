"""What rollouts count in an integer array: totals of the call, and the iterations up to each row that it saves."""

# Iterations, evaluations of the residual, cuts of the step length (or steps that were tried again), most iterations of
# a step, iterations of the last step; from TOTALS on, one number for each saved row: the iterations up to it.
ITERATIONS, EVALUATIONS, CUTS, MOST, LAST, TOTALS = 0, 1, 2, 3, 4, 5
