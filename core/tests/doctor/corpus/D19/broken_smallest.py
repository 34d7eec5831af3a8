from mortice import doctor

validation = {1e-3: 0.41, 1e-2: 0.58, 1e-1: 1.9, 1.0: float("nan")}
print(doctor.sweep_verdict(validation))  # <- D19
