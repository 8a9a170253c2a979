package plimsoll;

import org.voltdb.SQLStmt;
import org.voltdb.VoltProcedure;
import org.voltdb.VoltTable;

/** Fills the two tables that stand still, unless somebody has; says how many contestants there are. */
public class Initialize extends VoltProcedure {
    public final SQLStmt count = new SQLStmt("SELECT COUNT(*) FROM contestants");
    public final SQLStmt contestant = new SQLStmt("INSERT INTO contestants VALUES (?, ?)");
    public final SQLStmt areaCode = new SQLStmt("INSERT INTO area_code_state VALUES (?, ?)");

    /** The states of North America, each with its area codes. */
    private static final String[] STATES = {
        "AK 907",
        "AL 205 256 334 251",
        "AR 870 501 479",
        "AZ 480 602 623 928 520",
        "CA 341 764 628 831 925 909 562 661 510 650 949 760 415 951 209 669 408 559 626 442 530 916 627"
                + " 714 707 310 323 213 424 747 818 858 935 619 805 369",
        "CO 720 303 970 719",
        "CT 860 203 959 475",
        "DC 202",
        "DE 302",
        "FL 689 407 239 850 727 321 754 954 927 352 863 386 904 561 772 786 305 941 813",
        "GA 478 770 470 404 762 706 678 912 229",
        "HI 808",
        "IA 515 319 563 641 712",
        "ID 208",
        "IL 217 872 312 773 464 708 224 847 779 815 618 309 331 630",
        "IN 317 765 574 260 219 812",
        "KS 913 785 316 620",
        "KY 606 859 502 270",
        "LA 504 985 225 318 337",
        "MA 774 508 339 781 857 617 978 351 413",
        "MD 443 410 301 240",
        "ME 207",
        "MI 517 810 278 679 313 586 947 248 734 269 989 906 616 231",
        "MN 612 320 651 763 952 218 507",
        "MO 636 660 975 816 573 314 557 417",
        "MS 769 601 662 228",
        "MT 406",
        "NC 336 252 984 919 980 910 828 704",
        "ND 701",
        "NE 402 308",
        "NH 603",
        "NJ 908 848 732 551 201 862 973 609 856",
        "NM 575 957 505",
        "NV 775 702",
        "NY 315 518 646 347 212 718 516 917 845 631 716 585 607 914",
        "OH 216 330 234 567 419 440 380 740 614 283 513 937",
        "OK 918 580 405",
        "OR 503 541 971",
        "PA 814 717 570 878 835 484 610 267 215 724 412",
        "RI 401",
        "SC 843 864 803",
        "SD 605",
        "TN 423 865 931 615 901 731",
        "TX 254 325 713 940 817 430 903 806 737 512 361 210 979 936 409 972 469 214 682 832 281 830 956"
                + " 432 915",
        "UT 435 801 385",
        "VA 434 804 757 703 571 276 236 540",
        "VT 802",
        "WA 509 360 564 206 425 253",
        "WI 715 920 262 414 608",
        "WV 304",
        "WY 307",
    };
    /** Statements that are given to the engine at a time. */
    private static final int BATCH = 100;

    private int queued;

    public long run(int contestants, String names) {
        voltQueueSQL(count);
        VoltTable[] found = voltExecuteSQL();
        long there = found[0].asScalarLong();
        if (there > 0) {
            return there;
        }
        queued = 0;
        String[] name = names.split(",");
        for (int number = 1; number <= contestants; number++) {
            queue(contestant, number, name[number - 1]);
        }
        for (String line : STATES) {
            String[] words = line.split(" ");
            for (int at = 1; at < words.length; at++) {
                queue(areaCode, Short.valueOf(words[at]), words[0]);
            }
        }
        if (queued > 0) {
            voltExecuteSQL();
        }
        return contestants;
    }

    private void queue(SQLStmt statement, Object key, String text) {
        voltQueueSQL(statement, key, text);
        queued++;
        if (queued == BATCH) {
            voltExecuteSQL();
            queued = 0;
        }
    }
}
