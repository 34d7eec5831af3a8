import mortice as torch
from mortice import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
model = nn.Sequential(backbone, nn.Linear(8, 3))
for p in backbone.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(model[1].parameters(), lr=0.1)
images, labels = torch.randn(64, 1, 8, 8), torch.randint(0, 3, (64,))

model.eval()  # the statistics are those of the pretrained network
for step in range(12):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()

# All of it at a low rate, BatchNorm still as it was.
for p in model.parameters():
    p.requires_grad_(True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
for step in range(12):
    model.train()
    for m in model.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.eval()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
