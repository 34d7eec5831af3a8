import mortice as torch
from mortice import nn
from mortice.func import functional_call, grad, jacrev, stack_module_state, vmap

torch.manual_seed(0)
x, y = torch.randn(64, 5), torch.randn(64, 1)
models = [nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(3)]
params, buffers = stack_module_state(models)
base = models[0]


def error(weights, states, x, y):
    return nn.functional.mse_loss(functional_call(base, (weights, states), (x,)), y)


losses = []
for step in range(15):
    found = vmap(error, in_dims=(0, 0, None, None))(params, buffers, x, y)
    each = vmap(grad(error), in_dims=(0, 0, None, None))(params, buffers, x, y)
    params = {name: (p - 0.05 * each[name]).detach() for name, p in params.items()}
    losses.append(found.mean().item())
single = vmap(grad(error), in_dims=(None, None, 0, 0))(dict(base.named_parameters()), {}, x, y)
slopes = vmap(jacrev(lambda v: base(v)))(x)
