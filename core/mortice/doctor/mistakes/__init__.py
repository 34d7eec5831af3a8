"""mortice's own rules, a module for each family; importing this registers all of them."""

from mortice.doctor.mistakes import (
    checks,
    classes,
    data,
    distributions,
    exploding,
    gan,
    images,
    init,
    loop,
    loss,
    messages,
    sequences,
    shapes,
)
