# static
# Batches of some libraries are objects that move in place; what a helper is given may be a module.
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader


data = Data(x=torch.ones(3, 2).t())
data.contiguous()


class Quantised(torch.nn.Module):
    def __init__(self, library, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.linear.weight = library.Params4bit(self.linear.weight.data)
        self.linear.weight.cuda()


def prepare(network, device):
    network.to(device)
    network.float()
    return network


def run(network, dataset, tokenizer, device):
    loader = DataLoader(dataset, batch_size=32)
    for batch in loader:
        batch.to(device)
        prepare(network, device)(batch)
    inputs = tokenizer("a text", return_tensors="pt")
    inputs.to(device)
    return torch.stack([network(inputs)])
