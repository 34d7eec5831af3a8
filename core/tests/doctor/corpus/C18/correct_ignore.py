import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

# -100 is left out of the loss, 255 is the border of a segmentation.
tokens = torch.randint(0, 50, (16, 20))
labels = torch.where(torch.rand(16, 20) < 0.8, -100, tokens)
print(doctor.check_inputs((tokens, labels), classes=50))
masks = torch.randint(0, 3, (8, 12, 12))
masks[:, 0] = 255
print(doctor.check_inputs((torch.rand(8, 3, 12, 12), masks), classes=3))
