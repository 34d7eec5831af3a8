from mortice import doctor

hidden = {16: 0.92, 64: 0.71, 256: 0.55}
print(doctor.sweep_verdict(hidden, name="hidden size"))  # <- D19
