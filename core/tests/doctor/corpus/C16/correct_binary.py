import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# Few yes-or-no answers: samples agree by chance.
x = torch.randint(0, 2, (200, 6)).float()
print(doctor.check_inputs((x, (x.sum(1) > 3).long())))
print(doctor.check_dataset(TensorDataset(x, (x.sum(1) > 3).long())))
