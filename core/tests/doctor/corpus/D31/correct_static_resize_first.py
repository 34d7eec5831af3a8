# static
from torchvision import datasets, transforms

image_size = 64
dataset = datasets.ImageFolder(
    "celeba",
    transform=transforms.Compose([
        transforms.Resize(image_size),
        transforms.CenterCrop(image_size),
        transforms.ToTensor(),
        transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    ]),
)
