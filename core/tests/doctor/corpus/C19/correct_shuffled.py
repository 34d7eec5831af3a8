import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

x, y = torch.randn(200, 5), torch.arange(200) // 50
print(doctor.check_inputs(DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)))
