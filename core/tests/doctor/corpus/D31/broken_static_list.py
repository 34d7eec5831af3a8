# static
import mortice.vision.transforms as T
from mortice.vision import datasets

steps = [
    T.RandomHorizontalFlip(),
    T.RandomCrop(200),  # <- D31
    T.Resize((224, 224)),
    T.ToTensor(),
]
train_transform = T.Compose(steps)
dataset = datasets.ImageFolder("photos", train_transform)
