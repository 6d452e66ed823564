"""Steps of ``Maximal`` with the linear system of all bodies, joints, loops and contacts."""
