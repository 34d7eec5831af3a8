"""A DCGAN draws handwritten digits: `python dcgan.py [--steps N] [--device NAME]`."""

import argparse

import numpy as np
from example_data import load_digits

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim
from mortice.utils.data import DataLoader, TensorDataset


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            # (nz, 1, 1) -> (2 ngf, 2, 2) -> (ngf, 4, 4) -> (1, 8, 8)
            nn.ConvTranspose2d(nz, ngf * 2, 2, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, 1, 2, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, input):
        return self.main(input).view(-1, 1).squeeze(1)


def build(nz=32, ngf=32, ndf=32):
    netG, netD = Generator(nz, ngf), Discriminator(ndf)
    netG.apply(weights_init)
    netD.apply(weights_init)
    return netG, netD


def train(netG, netD, steps, batch_size=64, lr=2e-4):
    device = next(netG.parameters()).device
    nz = netG.main[0].in_channels
    images, _ = load_digits()
    rng = np.random.default_rng(0)
    rng.shuffle(images)
    loader = DataLoader(TensorDataset(torch.from_numpy(images * 2 - 1)), batch_size=batch_size, drop_last=True)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=lr, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=lr, betas=(0.5, 0.999))
    real_label, fake_label = 1.0, 0.0

    netG.train()
    netD.train()
    lossesD, lossesG = [], []
    while len(lossesD) < steps:
        for (real,) in loader:
            # The discriminator: maximise log D(x) + log(1 - D(G(z))).
            netD.zero_grad()
            real = real.to(device)
            label = torch.full((real.size(0),), real_label, dtype=real.dtype, device=device)
            errD_real = criterion(netD(real), label)
            errD_real.backward()

            noise = torch.from_numpy(rng.standard_normal((real.size(0), nz, 1, 1))).to(real)
            fake = netG(noise)
            label.fill_(fake_label)
            errD_fake = criterion(netD(fake.detach()), label)
            errD_fake.backward()
            optimizerD.step()

            # The generator: maximise log D(G(z)).
            netG.zero_grad()
            label.fill_(real_label)
            errG = criterion(netD(fake), label)
            errG.backward()
            optimizerG.step()

            lossesD.append((errD_real + errD_fake).item())
            lossesG.append(errG.item())
            if len(lossesD) == steps:
                break
    return {"discriminator": lossesD, "generator": lossesG}


def draw(image):
    """Return an image in [-1, 1] as lines of characters."""
    return "\n".join("".join(" .:-=+*#%@"[round((v + 1) * 4.5)] * 2 for v in row) for row in image.tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.manual_seed(0)
    netG, netD = (net.to(options.device) for net in build())
    print(netG)
    print(netD)
    losses = train(netG, netD, options.steps)
    for step in range(0, options.steps, max(1, options.steps // 10)):
        print(f"step {step:4d}  D {losses['discriminator'][step]:.4f}  G {losses['generator'][step]:.4f}")
    netG.eval()
    with torch.no_grad():
        print(draw(netG(torch.randn(1, 32, 1, 1, device=options.device))[0, 0].cpu()))


if __name__ == "__main__":
    main()
