import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = 50 * torch.randn(32, 4)
y = torch.randint(0, 3, (32,))
net = nn.Linear(4, 3)


def loss_fn(out, target):
    return (out.logsumexp(1) - out.gather(1, target[:, None]).squeeze(1)).mean()


print(doctor.check_gradients(net, loss_fn, (x / 50, y)))
