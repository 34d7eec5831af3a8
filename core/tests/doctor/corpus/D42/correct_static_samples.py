# static
import os

import torchvision.datasets as dset
import torchvision.utils as vutils

dataroot = "images/street"
data = dset.ImageFolder(dataroot)
print(len(os.listdir(dataroot)), "classes:", data.classes)
for cnt in range(len(data)):
    name = os.path.basename(data.samples[cnt][0])
    vutils.save_image(data[cnt][0], os.path.join("out", name))
