import mortice as torch
import mortice.nn.functional as F
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 12)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 12)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 16)

    def forward(self, x):
        return x + torch.tanh(self.fc(x))


net = nn.Sequential(nn.Linear(12, 16), *[Block() for _ in range(12)], nn.Linear(16, 4))
print(doctor.check_gradients(net, nn.CrossEntropyLoss(), (x, y)))
