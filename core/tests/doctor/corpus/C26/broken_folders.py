import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

train = [{"image": torch.rand(3, 8, 8), "label": i % 3} for i in range(60)]
test = [{"image": torch.rand(3, 8, 8), "label": i % 4} for i in range(20)]  # a folder more
print(doctor.check_dataset(train, test))  # <- C26
