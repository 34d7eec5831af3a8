import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x = torch.randn(100, 5)
price = 3 * x[:, :1] - x[:, 1:2] + torch.randn(100, 1)
x = torch.cat([x, 1.19 * price + 2], 1)  # the price with tax
print(doctor.check_inputs((x, price)))  # <- C17
