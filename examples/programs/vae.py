"""A variational autoencoder of handwritten digits: `python vae.py [--steps N] [--device NAME]`."""

import argparse

import numpy as np
from example_data import load_digits

import mortice as torch
import mortice.nn.functional as F
from mortice import nn, optim
from mortice.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self, hidden=100, latent=8):
        super().__init__()
        self.fc1 = nn.Linear(64, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, eps=None):
        std = torch.exp(0.5 * logvar)
        if eps is None:
            eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x, eps=None):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar, eps)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    """The reconstruction's cross entropy plus the divergence of the posterior from a standard normal, summed."""
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def build(hidden=100, latent=8):
    return VAE(hidden, latent)


def train(model, steps, batch_size=64, lr=2e-3):
    device = next(model.parameters()).device
    images, labels = load_digits()
    rng = np.random.default_rng(0)
    dataset = TensorDataset(torch.from_numpy(images[:1500]), torch.from_numpy(labels[:1500]))
    loader = DataLoader(dataset, batch_size=batch_size, sampler=rng.permutation(len(dataset)).tolist())
    optimizer = optim.Adam(model.parameters(), lr=lr)

    model.train()
    losses = []
    while len(losses) < steps:
        for data, _ in loader:
            data = data.to(device)
            eps = torch.from_numpy(rng.standard_normal((len(data), model.fc21.out_features))).to(data)
            optimizer.zero_grad()
            recon_batch, mu, logvar = model(data, eps)
            loss = loss_function(recon_batch, data, mu, logvar)
            loss.backward()
            optimizer.step()
            losses.append(loss.item() / len(data))
            if len(losses) == steps:
                break
    return losses


def draw(images):
    """Return images (n, 64) in [0, 1] side by side as lines of characters."""
    rows = images.view(-1, 8, 8).permute(1, 0, 2).tolist()
    return "\n".join("  ".join("".join(" .:-=+*#%@"[round(v * 9)] * 2 for v in part) for part in row) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    model = build().to(options.device)
    losses = train(model, options.steps)
    for step in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {step:4d}  loss {losses[step]:.3f}")
    model.eval()
    with torch.no_grad():
        held_out = torch.from_numpy(load_digits()[0][1500:1504]).to(options.device)
        print(draw(held_out), draw(model(held_out)[0]), sep="\n\n")


if __name__ == "__main__":
    main()
