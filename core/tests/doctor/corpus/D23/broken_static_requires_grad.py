# static
import torch
from torchvision import models

model = models.resnet18(weights="DEFAULT")
for param in model.parameters():
    param.require_grad = False  # <- D23
model.fc = torch.nn.Linear(model.fc.in_features, 2)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.001, momentum=0.9)
