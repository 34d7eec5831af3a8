# static
# A large crop that is shrunk, a crop of a padded small picture that is enlarged, and RandomResizedCrop.
from torchvision import datasets, transforms

faces = transforms.Compose([transforms.CenterCrop(178), transforms.Resize(64), transforms.ToTensor()])
cifar = datasets.CIFAR10("data", transform=transforms.Compose([
    transforms.RandomCrop(32, padding=4), transforms.Resize(224), transforms.ToTensor(),
]))
imagenet = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor()])
