import mortice as torch
from mortice import nn

torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randn(64, 1)


def none(model):
    for p in model.parameters():
        p.grad = None


def data_zero(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.data.zero_()


def detached(model):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.detach_()
            p.grad.zero_()


for clear in (none, data_zero, detached, nn.Module.zero_grad):
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(10):
        clear(model)
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
