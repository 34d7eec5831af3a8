import mortice as torch
from mortice import doctor, nn


class LoRA(nn.Module):
    def __init__(self, layer, rank=2):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, layer.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.a.T @ self.b.T


torch.manual_seed(0)
x, y = torch.randn(64, 10), torch.randint(0, 3, (64,))
model = nn.Sequential(LoRA(nn.Linear(10, 24)), nn.ReLU(), LoRA(nn.Linear(24, 3)))
print(doctor.check_gradients(model, nn.CrossEntropyLoss(), (x, y)))
