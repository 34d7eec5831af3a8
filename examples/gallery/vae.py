"""A variational autoencoder lays pictures out on a plane: `python vae.py [--dataset digits|photos|...]`.

Kingma and Welling, "Auto-encoding variational Bayes" (2013).
"""

import common

import mortice as torch
import mortice.nn as nn
import mortice.vision.transforms as transforms
from mortice.nn import functional as F
from mortice.utils.data import DataLoader


class VAE(nn.Module):
    """An image becomes a normal distribution of nz numbers; numbers drawn from it become an image."""

    def __init__(self, shape, hidden, nz):
        super().__init__()
        self.shape, size = shape, shape.numel()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.mean, self.logvar = nn.Linear(hidden, nz), nn.Linear(hidden, nz)
        self.decoder = nn.Sequential(
            nn.Linear(nz, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, size)
        )  # fmt: skip

    def encode(self, x):
        h = self.encoder(x)
        return self.mean(h), self.logvar(h)

    def decode(self, z):
        return self.decoder(z).view(-1, *self.shape)

    def forward(self, x):
        mean, logvar = self.encode(x)
        z = mean + torch.exp(0.5 * logvar) * torch.randn_like(mean)  # so that gradients reach mean and logvar
        return self.decode(z), mean, logvar


def plane(model, count, device):
    """Return count x count images: the points of the plane at equal steps of probability, as the model draws them."""
    steps = torch.special.ndtri(torch.linspace(0.03, 0.97, count))
    z = torch.zeros(count, count, model.mean.out_features)
    z[..., 0], z[..., 1] = steps[None, :], steps.flip(0)[:, None]
    return torch.sigmoid(model.decode(z.view(count * count, -1).to(device)))


def main(argv=None):
    parser = common.make_parser(__doc__, outf="out/vae", niter=150, lr=1e-3)
    parser.add_argument("--imageSize", type=int, default=16)
    parser.add_argument("--nz", type=int, default=2, help="numbers that stand for an image; 2 can be drawn as a plane")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--beta", type=float, default=1.0, help="weight of the distance from the normal distribution")
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    transform = transforms.Compose([transforms.Resize((opt.imageSize, opt.imageSize)), transforms.ToTensor()])
    dataset = common.image_dataset(opt, transform)
    loader = DataLoader(dataset, batch_size=opt.batchSize, shuffle=True, num_workers=opt.workers, drop_last=True)
    model = VAE(dataset[0][0].shape, opt.hidden, opt.nz).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    run = common.Run(opt, model=model, optimizer=optimizer)

    for _ in run.epochs():
        for x, _ in run.batches(loader):
            x = x.to(device)
            optimizer.zero_grad()
            logits, mean, logvar = model(x)
            picture = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
            # KL divergence of the distribution from the standard normal one: appendix B of the paper
            distance = -0.5 * torch.sum(1 + logvar - mean.pow(2) - logvar.exp()) / len(x)
            loss = picture + opt.beta * distance
            loss.backward()
            optimizer.step()
            run.log(loss=loss, distance=distance)

    model.eval()
    x = next(iter(loader))[0].to(device)
    with torch.no_grad():
        pairs = torch.stack((x[:24], torch.sigmoid(model(x)[0][:24])), 1).flatten(0, 1)
        run.picture("pairs.png", pairs, nrow=12)
        run.picture("plane.png", plane(model, 14, device), nrow=14)
    run.plot("loss.png", "loss, and the part of it that is distance", "loss", "distance")


if __name__ == "__main__":
    main()
