import mortice as torch
from mortice.utils.data import DataLoader, Dataset
from mortice.vision import transforms
from PIL import Image


class Pictures(Dataset):
    transform = transforms.ToTensor()

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.transform(Image.new("RGB", (16, 16), (i, i, i))), i % 2


for images, labels in DataLoader(Pictures(), batch_size=4):
    assert images.shape == (4, 3, 16, 16)
