# Two values are no search.
from mortice import doctor

print(doctor.sweep_verdict({0.01: 0.5, 0.1: 0.3}))
