# raises: Add transforms.ToTensor() as the last step
import mortice as torch
from mortice.utils.data import DataLoader, Dataset
from PIL import Image


class Pictures(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return Image.new("RGB", (16, 16), (i, i, i)), i % 2


for images, labels in DataLoader(Pictures(), batch_size=4):
    print(images.shape)
