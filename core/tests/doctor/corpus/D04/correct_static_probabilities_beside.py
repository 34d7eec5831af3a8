# static
# The probabilities are for people; the loss gets the logits.
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        logits = self.fc2(F.relu(self.fc1(x)))
        return logits, F.softmax(logits, dim=1)


model = Net()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters())
for images, labels in trainloader:
    optimizer.zero_grad()
    logits, probas = model(images)
    loss = criterion(logits, labels)
    loss.backward()
    optimizer.step()
    print(probas.max())
