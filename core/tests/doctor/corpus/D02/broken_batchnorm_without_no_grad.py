import mortice as torch
from mortice import nn

torch.manual_seed(1)
X = torch.randn(320, 1, 8, 8)
y = (X.mean(dim=(1, 2, 3)) > 0).long()
X_train, y_train, X_valid, y_valid = X[:192], y[:192], X[192:], y[192:]

model = nn.Sequential(
    nn.Conv2d(1, 8, 3, bias=False),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(8 * 36, 2),
)
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.SGD(model.parameters(), lr=0.05)

for epoch in range(2):
    for i in range(0, 192, 32):
        loss = loss_fn(model(X_train[i : i + 32]), y_train[i : i + 32])
        opt.zero_grad()
        loss.backward()
        opt.step()
    correct = 0
    for i in range(0, 128, 16):
        prediction = model(X_valid[i : i + 16]).argmax(1)  # <- D02
        correct += (prediction == y_valid[i : i + 16]).sum().item()
    print(epoch, correct / 128)
