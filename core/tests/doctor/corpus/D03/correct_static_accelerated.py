# static
# The optimiser is made elsewhere, and its step clears the gradients.
import torch

from project.training import make_model, make_optimizer

model = make_model()
engine = make_optimizer(model)
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    engine.step()
