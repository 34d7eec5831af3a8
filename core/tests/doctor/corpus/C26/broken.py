import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(200, 6), torch.arange(200) // 20
train, test = TensorDataset(x[:160], y[:160]), TensorDataset(x[160:], y[160:])  # sorted by class
print(doctor.check_dataset(train, test))  # <- C26
