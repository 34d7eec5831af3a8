import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# (N, heads, T, features): no image, though its last size is small.
x = torch.randn(16, 4, 50, 3)
print(doctor.check_inputs((x, torch.randint(0, 2, (16,)))))
