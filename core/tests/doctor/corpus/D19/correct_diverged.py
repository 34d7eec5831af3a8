# The largest rate that did not diverge is the best, and a larger one was tried.
from mortice import doctor

print(doctor.sweep_verdict({0.001: 0.9, 0.01: 0.6, 0.1: 0.3, 1.0: float("inf")}))
