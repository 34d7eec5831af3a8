import mortice as torch
from mortice import nn

layer = nn.Linear(8, 8)
heatmap = layer.weight.detach().cpu().tolist()
largest = layer.weight.abs().max().item()
print(len(heatmap), largest)
