import mortice as torch
from mortice import doctor, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 5)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.fc3(x)


torch.manual_seed(0)
centres = torch.randn(5, 20)
labels = torch.randint(0, 5, (64,))
features = centres[labels] + torch.randn(64, 20)

net = Net()
for layer in (net.fc1, net.fc2, net.fc3):
    nn.init.constant_(layer.bias, -1.0)
    nn.init.zeros_(layer.weight)
result = doctor.overfit_one_batch(net, nn.CrossEntropyLoss(), (features, labels), steps=100)  # <- D01
losses = result.losses
print(result)
