import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Coin flips of a few switches: noise, and no mistake.
x = torch.randint(0, 2, (200, 5)).float()
print(doctor.check_inputs((x, (torch.rand(200) < 0.3 + 0.4 * x[:, 0]).long())))
