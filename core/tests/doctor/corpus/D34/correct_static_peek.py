# static
# One look at a batch before training; of each loader its first batch; and an iterator that is kept.
import torch
from torch import nn
from torch.utils.data import DataLoader

train_loader = DataLoader(dataset, batch_size=32)
images, labels = next(iter(train_loader))
print(images.shape)
for loader in (train_loader, test_loader):
    x, y = next(iter(loader))
    print(x.shape)

model = nn.Linear(10, 2)
optimizer = torch.optim.Adam(model.parameters())
batches = iter(train_loader)
for step in range(1000):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(train_loader)
        x, y = next(batches)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
