import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
centres = torch.randn(4, 10)
y = torch.randint(0, 4, (128,))
x = centres[y] + torch.randn(128, 10)


def make_model():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))


def make_optimizer(model, weight_decay):
    biases = [p for p in model.parameters() if p.ndim == 1]
    weights = [p for p in model.parameters() if p.ndim > 1]
    groups = [{"params": weights, "weight_decay": weight_decay}, {"params": biases}]
    return torch.optim.SGD(groups, lr=0.1)


result = doctor.check_regularization(make_model, nn.CrossEntropyLoss(), (x, y), optimizer=make_optimizer)
losses = result.losses
print(result)
