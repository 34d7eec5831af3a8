# raises: to plot or keep it use weights.detach()
import mortice as torch
from mortice import nn

layer = nn.Linear(8, 8)
weights = layer.weight
heatmap = weights.numpy()
