"""A process that calls mpiexec's bootstrap socket with noise: noisy_rank.py SEED PROGRAM ...; at its end it becomes the program."""
import os
import random
import socket
import struct
import sys

MAGIC, HELLO, FINALIZED, ABORT = 0x57465435, 1, 4, 5


def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("\0" + os.environ["WEFT_BOOT_ADDR"])
    return s


def hello(rank, cookie):
    return struct.pack("=IIii33s3x", MAGIC, HELLO, rank, os.getpid(), cookie)


def main():
    r = random.Random(int(sys.argv[1]))
    cookie = os.environ["WEFT_COOKIE"].encode()
    number, inode = map(int, os.environ["WEFT_BOOT_FD"].split(":"))
    assert os.fstat(number).st_ino == inode
    inherited = socket.socket(fileno=os.dup(number))
    kept = []
    for _ in range(200):
        message = bytearray(r.choice((hello(r.randint(-3, 9), cookie), hello(0, cookie[::-1]), r.randbytes(r.randint(1, 300)),
                                      struct.pack("=II", MAGIC, r.randint(0, 9)), b"\0" * r.randint(1, 5000))))
        # A correct hello for this rank would take its place, so break the magic, the cookie or the length of those.
        if message[:4] == struct.pack("=I", MAGIC) and len(message) > 20:
            where = r.choice((0, 17, None))
            if where is None:
                message = message[:-r.randint(1, 40)]
            else:
                message[where] ^= 1 << r.randint(0, 7)
        if r.random() < 0.5:
            s = connect()
            s.send(message)
            if r.random() < 0.3:
                kept.append(s)
            else:
                s.close()
        else:
            fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(r.randint(0, 3))]
            inherited.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else [])
            for fd in fds:
                os.close(fd)
    os.execv(sys.argv[2], sys.argv[2:])


def rank_with_odd_words():
    """A proper rank, but with nonsense between its words."""
    r = random.Random(int(sys.argv[2]))
    s = connect()
    s.send(hello(int(os.environ["WEFT_RANK"]), os.environ["WEFT_COOKIE"].encode()))
    welcome, fds, _, _ = socket.recv_fds(s, 8192, 4)
    assert len(fds) == 3 and struct.unpack_from("=II", welcome) == (MAGIC, 2), (len(welcome), fds)
    for _ in range(200):
        s.send(r.choice((r.randbytes(r.randint(1, 2000)), struct.pack("=II", MAGIC, r.choice((0, 1, 2, 3, 6, 77))),
                         struct.pack("=II", MAGIC, ABORT), struct.pack("=IIi", MAGIC, ABORT, 3) + b"x" * r.randint(0, 1000))))
    s.send(struct.pack("=II", MAGIC, FINALIZED))
    os.write(1, b"finalized\n")  # at once, whatever buffers Python was told to keep


if __name__ == "__main__":
    if sys.argv[1] == "words":
        rank_with_odd_words()
    else:
        main()
