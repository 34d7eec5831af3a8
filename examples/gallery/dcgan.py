"""A deep convolutional GAN draws pictures: `python dcgan.py [--dataset digits|photos|cifar10|folder|fake]`.

Radford, Metz and Chintala, "Unsupervised representation learning with deep convolutional GANs" (2015).
"""

import common

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim
import mortice.vision.transforms as transforms
from mortice.utils.data import DataLoader


def weights_init(m):
    """Initialise as the paper says; `net.apply` calls this on each module."""
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        m.weight.data.normal_(0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        m.weight.data.normal_(1.0, 0.02)
        m.bias.data.fill_(0)


def doublings(size):
    """Return how often 4x4 doubles to give the size of the images."""
    count = size.bit_length() - 3
    if count < 1 or 4 << count != size:
        raise SystemExit(f"--imageSize {size}: expected 8, 16, 32, 64, ...")
    return count


class Generator(nn.Module):
    """Noise (nz, 1, 1) becomes 4x4, then twice as large with half the channels until it is an image."""

    def __init__(self, nz, ngf, nc, size):
        super().__init__()
        width = ngf << doublings(size) - 1
        layers = [nn.ConvTranspose2d(nz, width, 4, 1, 0, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        while width > ngf:
            layers += [
                nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width // 2),
                nn.ReLU(True),
            ]
            width //= 2
        self.main = nn.Sequential(*layers, nn.ConvTranspose2d(ngf, nc, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    """An image becomes half as large with twice the channels until it is 4x4, then one number."""

    def __init__(self, ndf, nc, size, last=nn.Sigmoid):
        super().__init__()
        layers, width = [nn.Conv2d(nc, ndf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)], ndf
        for _ in range(doublings(size) - 1):
            layers += [nn.Conv2d(width, width * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(width * 2)]
            layers += [nn.LeakyReLU(0.2, inplace=True)]
            width *= 2
        self.main = nn.Sequential(*layers, nn.Conv2d(width, 1, 4, 1, 0, bias=False), last())

    def forward(self, input):
        return self.main(input).view(-1)


def make_data(opt):
    """Return the images between -1 and 1, as Tanh draws them, and how many channels they have."""
    resize = [transforms.Resize(opt.imageSize), transforms.CenterCrop(opt.imageSize)]
    to_tensor = [transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]
    data = common.image_dataset(opt, transforms.Compose([*resize, *to_tensor]))
    return data, data[0][0].shape[0]


def make_parser(description, **defaults):
    """Return the options of this program, which are those of wgan.py too."""
    parser = common.make_parser(description, **defaults)
    parser.add_argument("--imageSize", type=int, default=32, help="8, 16, 32, 64, ...")
    parser.add_argument("--nz", type=int, default=64, help="how many numbers of noise make an image")
    parser.add_argument("--ngf", type=int, default=32, help="channels of the generator's last layer")
    parser.add_argument("--ndf", type=int, default=32, help="channels of the discriminator's first layer")
    parser.add_argument("--netG", default="", help="weights to begin with")
    parser.add_argument("--netD", default="", help="weights to begin with")
    return parser


def main(argv=None):
    parser = make_parser(__doc__, outf="out/dcgan", niter=25)
    parser.add_argument("--beta1", type=float, default=0.5, help="of Adam")
    parser.add_argument("--ngpu", type=int, default=1)
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    dataset, nc = make_data(opt)
    dataloader = DataLoader(dataset, batch_size=opt.batchSize, shuffle=True, num_workers=opt.workers, drop_last=True)
    fixed_noise = torch.randn(64, opt.nz, 1, 1, device=device)
    nets = []
    for net, path in (
        (Generator(opt.nz, opt.ngf, nc, opt.imageSize), opt.netG),
        (Discriminator(opt.ndf, nc, opt.imageSize), opt.netD),
    ):
        net.apply(weights_init)
        if path:
            net.load_state_dict(torch.load(path))
        nets.append(net.to(device))
        print(net)
    if opt.ngpu > 1 and torch.cuda.device_count() > 1:
        nets = [nn.DataParallel(net, range(opt.ngpu)) for net in nets]
    netG, netD = nets

    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
    run = common.Run(opt, netG=netG, netD=netD, optimizerG=optimizerG, optimizerD=optimizerD)

    for epoch in run.epochs():
        for real, _ in run.batches(dataloader):
            # D: maximise log(D(x)) + log(1 - D(G(z)))
            netD.zero_grad()
            real = real.to(device)
            label = torch.full((real.size(0),), 1.0, device=device)
            output = netD(real)
            errD_real = criterion(output, label)
            errD_real.backward()

            noise = torch.randn(real.size(0), opt.nz, 1, 1, device=device)
            fake = netG(noise)
            label.fill_(0.0)
            errD_fake = criterion(netD(fake.detach()), label)  # detached: G learns nothing from D's step
            errD_fake.backward()
            optimizerD.step()

            # G: maximise log(D(G(z)))
            netG.zero_grad()
            label.fill_(1.0)  # for G the fakes are to be taken as real
            errG = criterion(netD(fake), label)
            errG.backward()
            optimizerG.step()
            run.log(loss_D=errD_real + errD_fake, loss_G=errG, D_of_x=output.mean())

        with torch.no_grad():
            fake = netG(fixed_noise)  # in training mode: with the batch's own statistics, as it is trained
        run.picture(f"fake_samples_epoch_{epoch + 1:03d}.png", fake, normalize=True, value_range=(-1, 1))
    real, _ = next(iter(dataloader))
    run.picture("real_samples.png", real, normalize=True, value_range=(-1, 1))
    run.plot("losses.png", "a game of two: neither loss falls to 0", "loss_D", "loss_G")


if __name__ == "__main__":
    main()
