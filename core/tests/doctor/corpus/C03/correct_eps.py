import mortice as torch
from mortice import doctor, nn

torch.manual_seed(0)
x = torch.randn(16, 3)
x[3] = 0
net = nn.Linear(3, 5, bias=False)
loss_fn = lambda out, target: (((out**2).sum(1) + 1e-6).sqrt() - target).abs().mean()
print(doctor.check_gradients(net, loss_fn, (x, torch.randn(16))))
