#!/usr/bin/env python3
"""Writes media_expected.h: small image files with their pixels, and checksums
of resized images, all by Pillow 13.

Run it after changing a case here:

    .deps/clients/openai3/bin/python t/unit/media_expected.py \\
        > t/unit/media_expected.h
"""

import io
import math
import struct
import zlib

import PIL
from PIL import Image

assert PIL.__version__ >= '13'

W, H = 11, 7


def number(seed, i):
    """the byte that t/unit/media_image.c has, too"""
    z = (seed * 0x9e3779b97f4a7c15 + i * 0xbf58476d1ce4e5b9) % (1 << 64)
    z ^= z >> 29
    z = z * 0x94d049bb133111eb % (1 << 64)
    return z >> 56


def noise(seed, n):
    return bytes(number(seed, i) for i in range(n))


def smooth(mode='RGB'):
    image = Image.new('RGB', (W, H))
    image.putdata([(x * 255 // (W - 1), y * 255 // (H - 1), (x + y) * 15)
                   for y in range(H) for x in range(W)])
    return image.convert(mode)


def saved(image, kind, **options):
    f = io.BytesIO()
    image.save(f, kind, **options)
    return f.getvalue()


def exif(orientation):
    e = Image.Exif()
    e[0x112] = orientation
    return e.tobytes()


def chunk(kind, data):
    return (struct.pack('>I', len(data)) + kind + data
            + struct.pack('>I', zlib.crc32(kind + data)))


def deep(kind, samples):
    """a PNG of 16 bits; the upper byte is what is read"""
    per = {0: 1, 2: 3}[kind]
    raw = b''.join(b'\0' + bytes(b for s in samples[y * W * per:][:W * per]
                                 for b in (s, 255 - s))
                   for y in range(H))
    return (b'\x89PNG\r\n\x1a\n'
            + chunk(b'IHDR', struct.pack('>IIBBBBB', W, H, 16, kind, 0, 0, 0))
            + chunk(b'IDAT', zlib.compress(raw)) + chunk(b'IEND', b''))


def white(image):
    """alpha on white, to the nearest"""
    image = image.convert('RGBA')
    data = image.getdata()
    out = Image.new('RGB', image.size)
    out.putdata([tuple((c * a + 255 * (255 - a) + 127) // 255
                       for c in rgb) for *rgb, a in data])
    return out


def cases():
    rgb = smooth()
    alpha = smooth('RGBA')
    alpha.putalpha(Image.frombytes('L', (W, H), noise(1, W * H)))
    other = rgb.transpose(Image.Transpose.ROTATE_180)

    yield 'rgb.png', saved(rgb, 'PNG'), rgb, 0
    yield 'interlaced.png', saved(rgb, 'PNG', interlace=1), rgb, 0
    yield 'palette.png', saved(rgb.quantize(9), 'PNG'), rgb.quantize(9), 0
    yield 'grey.png', saved(smooth('L'), 'PNG'), smooth('L'), 0
    yield 'bits.png', saved(smooth('1'), 'PNG'), smooth('1'), 0
    yield 'alpha.png', saved(alpha, 'PNG'), white(alpha), 0
    yield ('grey alpha.png', saved(alpha.convert('LA'), 'PNG'),
           white(alpha.convert('LA')), 0)

    grey = noise(2, W * H)
    yield ('grey 16.png', deep(0, grey), Image.frombytes('L', (W, H), grey),
           0)
    color = noise(3, W * H * 3)
    yield ('rgb 16.png', deep(2, color),
           Image.frombytes('RGB', (W, H), color), 0)

    for o in range(1, 9):
        data = saved(rgb, 'PNG', exif=exif(o))
        turned = Image.open(io.BytesIO(data))
        from PIL import ImageOps
        yield 'exif %d.png' % o, data, ImageOps.exif_transpose(turned), 0

    for name, image, options in (
            ('plain.jpg', rgb, {'quality': 90}),
            ('progressive.jpg', rgb, {'progressive': True}),
            ('grey.jpg', smooth('L'), {}),
            ('cmyk.jpg', smooth('CMYK'), {}),
            ('exif 6.jpg', rgb, {'exif': exif(6)}),
            ('exif 3.jpg', rgb, {'exif': exif(3)})):
        from PIL import ImageOps
        data = saved(image, 'JPEG', **options)
        read = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        yield name, data, read, 3

    yield 'lossless.webp', saved(rgb, 'WEBP', lossless=True), rgb, 0
    yield ('alpha.webp', saved(alpha, 'WEBP', lossless=True, exact=True),
           white(alpha), 0)
    yield ('moving.webp', saved(rgb, 'WEBP', lossless=True, save_all=True,
                                append_images=[other]), rgb, 0)
    lossy = saved(rgb, 'WEBP', quality=80, exif=exif(8))
    from PIL import ImageOps
    yield ('exif 8.webp', lossy,
           ImageOps.exif_transpose(Image.open(io.BytesIO(lossy))), 4)

    few = rgb.quantize(16)
    yield 'still.gif', saved(few, 'GIF', interlace=0), few, 0
    yield 'interlaced.gif', saved(few, 'GIF', interlace=1), few, 0
    yield ('moving.gif', saved(few, 'GIF', save_all=True,
                               append_images=[other.quantize(16)]), few, 0)
    yield 'rgb.bmp', saved(rgb, 'BMP'), rgb, 0
    yield 'palette.bmp', saved(few, 'BMP'), few, 0
    yield 'bits.bmp', saved(smooth('1'), 'BMP'), smooth('1'), 0


def array(name, data):
    print('static const uint8_t  %s[] = {' % name)
    for i in range(0, len(data), 12):
        print('    ' + ', '.join('0x%02x' % b for b in data[i:i + 12])
              + (',' if i + 12 < len(data) else ''))
    print('};\n')


def fnv(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = (h ^ b) * 0x100000001b3 % (1 << 64)
    return h


print('\n/* made by media_expected.py; see there */\n')

rows = []

for i, (name, data, image, step) in enumerate(cases()):
    pixels = image.convert('RGB')
    array('file_%d' % i, data)
    array('pixels_%d' % i, pixels.tobytes())
    rows.append('    { "%s", file_%d, sizeof(file_%d), %d, %d, pixels_%d, '
                '%d }' % (name, i, i, *pixels.size, i, step))

print('static const media_file_t  media_files[] = {')
print(',\n'.join(rows))
print('};\n\nstatic const media_resize_t  media_resizes[] = {')

rows = []
filters = [('BILINEAR', Image.Resampling.BILINEAR),
           ('BICUBIC', Image.Resampling.BICUBIC),
           ('LANCZOS', Image.Resampling.LANCZOS)]

for i in range(90):
    w, h, to_w, to_h = (2 + number(100 + i, k) % 60 for k in range(4))
    name, f = filters[i % 3]
    image = Image.frombytes('RGB', (w, h), noise(i, w * h * 3))
    rows.append('    { %d, %d, %d, %d, LLM_RESAMPLE_%s,\n      0x%016xu }'
                % (w, h, to_w, to_h, name,
                   fnv(image.resize((to_w, to_h), f).tobytes())))

print(',\n'.join(rows))
print('};\n\nstatic const media_prepared_t  media_prepared[] = {')


def middle(image, side):
    """in the middle of a square of the mean colour"""
    n = max(image.size)
    square = Image.new('RGB', (n, n), (127, 127, 127))
    square.paste(image, tuple((n - x) // 2 for x in image.size))

    return square.resize((side, side), Image.Resampling.BICUBIC)


def extended(image, patch):
    """at most 4096 whole patches; black up to whole cells of four"""
    w, h = image.size
    n = (w // patch) * (h // patch)

    if n > 4096:
        scale = math.sqrt(4096 / n)
        w, h = int(w * scale), int(h * scale)
        image = image.resize((w, h), Image.Resampling.BICUBIC)

    whole = Image.new('RGB', (w + -w % (2 * patch), h + -h % (2 * patch)))
    whole.paste(image, (0, 0))

    return whole


rows = []

for i, (family, w, h, side, patch) in enumerate((
        ('mlp', 50, 31, 28, 14), ('mlp', 31, 50, 28, 14),
        ('mlp', 5, 9, 28, 14), ('mlp', 28, 28, 28, 14),
        ('mlp', 28, 13, 28, 14), ('mlp', 300, 2, 16, 4),
        ('mlp', 1, 301, 16, 4),
        ('kimivl', 56, 28, 896, 14), ('kimivl', 57, 27, 896, 14),
        ('kimivl', 3, 1, 896, 14), ('kimivl', 200, 151, 128, 2),
        ('kimivl', 99, 400, 128, 2))):
    image = Image.frombytes('RGB', (w, h), noise(i, w * h * 3))
    image = (middle(image, side) if family == 'mlp'
             else extended(image, patch))
    rows.append('    { "%s", %d, %d, %d, %d, %d, %d,\n      0x%016xu }'
                % (family, side, patch, w, h, *image.size,
                   fnv(image.tobytes())))

print(',\n'.join(rows))
print('};')
