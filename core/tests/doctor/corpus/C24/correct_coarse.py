import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Eight switches: the same settings come again, and belong to both.
x = torch.randint(0, 2, (200, 8)).float()
y = (x.sum(1) + 0.5 * torch.randn(200) > 4).long()
print(doctor.check_dataset(TensorDataset(x[:150], y[:150]), TensorDataset(x[150:], y[150:])))
