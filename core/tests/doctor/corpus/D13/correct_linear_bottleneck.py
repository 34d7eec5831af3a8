# style
import mortice as torch
import mortice.nn as nn


class InvertedResidual(nn.Module):
    """MobileNetV2's block ends without an activation on purpose."""

    def __init__(self, cin, cout):
        super().__init__()
        mid = 2 * cin
        self.layers = nn.Sequential(
            nn.Conv2d(cin, mid, 1, bias=False),
            nn.BatchNorm2d(mid),
            nn.ReLU6(),
            nn.Conv2d(mid, mid, 3, padding=1, groups=mid, bias=False),
            nn.BatchNorm2d(mid),
            nn.ReLU6(),
            nn.Conv2d(mid, cout, 1, bias=False),
            nn.BatchNorm2d(cout),
        )

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
net = nn.Sequential(
    nn.BatchNorm2d(3),
    InvertedResidual(3, 6),
    InvertedResidual(6, 8),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 2),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    images, labels = torch.randn(8, 3, 8, 8), torch.randint(0, 2, (8,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
