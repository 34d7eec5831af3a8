import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Regression over time: there are no classes to be in order.
x = torch.randn(200, 5)
y = torch.linspace(0, 1, 200) + 0.1 * torch.randn(200)
print(doctor.check_inputs(DataLoader(TensorDataset(x, y), batch_size=10)))
