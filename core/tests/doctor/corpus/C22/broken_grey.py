import mortice as torch
from mortice import doctor, nn
from mortice.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)

images = [torch.rand(1 if i % 20 == 5 else 3, 8, 8) for i in range(60)]
print(doctor.check_dataset([{"image": image, "label": i % 2} for i, image in enumerate(images)]))  # <- C22
