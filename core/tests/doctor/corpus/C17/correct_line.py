import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# One feature and a line: that is the whole task.
x = torch.linspace(-1, 1, 50)[:, None]
print(doctor.check_inputs((x, 2 * x + 1)))
