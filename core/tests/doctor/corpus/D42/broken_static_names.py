# static
import os

import torchvision.datasets as dset
import torchvision.transforms as transforms
import torchvision.utils as vutils

dataroot = "images/street"
outf = "images/street_64"
names = []
for img in os.listdir(os.path.join(dataroot, "image")):  # <- D42
    names.append(img)
data = dset.ImageFolder(dataroot, transform=transforms.Compose([transforms.Resize(64), transforms.ToTensor()]))
for cnt in range(len(data)):
    vutils.save_image(data[cnt][0], os.path.join(outf, names[cnt]))
