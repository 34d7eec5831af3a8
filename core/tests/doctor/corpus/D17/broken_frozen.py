import mortice as torch
import mortice.nn as nn
from mortice import doctor

torch.manual_seed(0)
x = torch.randn(96, 8)
y = (x[:, 0] * x[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Linear(8, 32)
        self.head = nn.Linear(32, 2)
        for p in self.features.parameters():
            p.requires_grad_(False)

    def forward(self, x):
        return self.head(torch.relu(self.features(x)))


def optimizer(net, decay):
    # The decay is on the part that is frozen.
    return torch.optim.Adam(
        [{"params": net.features.parameters(), "weight_decay": decay}, {"params": net.head.parameters()}], lr=0.01
    )


print(doctor.check_regularization(Net, nn.CrossEntropyLoss(), (x, y), strengths=(0, 0.1, 1), optimizer=optimizer))  # <- D17
