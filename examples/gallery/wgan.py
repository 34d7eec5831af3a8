"""A Wasserstein GAN: its loss says how good the pictures are: `python wgan.py [--dataset digits|photos|...]`.

Arjovsky, Chintala and Bottou, "Wasserstein GAN" (2017). The networks are those of dcgan.py, without the sigmoid.
"""

import common
import dcgan

import mortice as torch
import mortice.nn as nn
import mortice.optim as optim
from mortice.utils.data import DataLoader


def main(argv=None):
    parser = dcgan.make_parser(__doc__, outf="out/wgan", niter=40, lr=5e-4, batchSize=32)
    parser.add_argument("--clamp", type=float, default=0.05, help="the critic's weights stay between -clamp and clamp")
    parser.add_argument("--nCritic", type=int, default=5, help="steps of the critic for each of the generator")
    opt = common.begin(parser, argv)
    device = torch.device(opt.device)

    dataset, nc = dcgan.make_data(opt)
    dataloader = DataLoader(dataset, batch_size=opt.batchSize, shuffle=True, num_workers=opt.workers, drop_last=True)
    fixed_noise = torch.randn(64, opt.nz, 1, 1, device=device)
    netG = dcgan.Generator(opt.nz, opt.ngf, nc, opt.imageSize).to(device)
    netD = dcgan.Discriminator(opt.ndf, nc, opt.imageSize, last=nn.Identity).to(device)
    for net, path in ((netG, opt.netG), (netD, opt.netD)):
        net.apply(dcgan.weights_init)
        if path:
            net.load_state_dict(torch.load(path))

    # Momentum makes the critic unstable, so RMSprop instead of Adam.
    optimizerD = optim.RMSprop(netD.parameters(), lr=opt.lr)
    optimizerG = optim.RMSprop(netG.parameters(), lr=opt.lr)
    run = common.Run(opt, netG=netG, netD=netD, optimizerG=optimizerG, optimizerD=optimizerD)

    for epoch in run.epochs():
        for i, (real, _) in enumerate(run.batches(dataloader), start=1):
            # The critic: how much higher it rates real images is an estimate of the distance between the two.
            real = real.to(device)
            netD.zero_grad()
            with torch.no_grad():
                fake = netG(torch.randn(real.size(0), opt.nz, 1, 1, device=device))
            distance = netD(real).mean() - netD(fake).mean()
            (-distance).backward()
            optimizerD.step()
            for p in netD.parameters():  # what keeps the critic's slope in bounds
                p.data.clamp_(-opt.clamp, opt.clamp)
            run.log(distance=distance)

            if i % opt.nCritic == 0:
                netG.zero_grad()
                loss = -netD(netG(torch.randn(real.size(0), opt.nz, 1, 1, device=device))).mean()
                loss.backward()
                optimizerG.step()

        if (epoch + 1) % 5 == 0 or epoch + 1 == opt.niter:
            with torch.no_grad():
                fake = netG(fixed_noise)  # in training mode: with the batch's own statistics, as it is trained
            run.picture(f"fake_samples_epoch_{epoch + 1:03d}.png", fake, normalize=True, value_range=(-1, 1))
    real, _ = next(iter(dataloader))
    run.picture("real_samples.png", real, normalize=True, value_range=(-1, 1))
    run.plot("losses.png", "the distance falls as the pictures get better", "distance")


if __name__ == "__main__":
    main()
