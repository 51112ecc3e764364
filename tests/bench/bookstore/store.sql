-- SPDX-License-Identifier: GPL-2.0-or-later
-- The bookstore of TPC-W, smaller: 1,000 books, 3,000 customers, 9,000 orders.  @ENGINE@ is that of the table `item`.
create table author (a_id int primary key, a_fname varchar(20), a_lname varchar(20), key (a_lname)) engine=innodb;
insert into author select seq, concat('First', seq % 97), concat('Last', seq % 211) from seq_1_to_250;
create table item (i_id int primary key, i_title varchar(60), i_a_id int, i_pub_date date, i_subject int,
	i_related1 int, i_related2 int, i_thumbnail varchar(40), i_srp double, i_cost double, i_stock int, i_isbn char(13),
	i_desc varchar(400), key (i_a_id), key (i_subject), key (i_title)) engine=@ENGINE@;
insert into item select seq, concat('Title ', seq % 331, ' of ', seq), seq % 250 + 1, date_sub(curdate(), interval seq day),
	seq % 24, seq % 1000 + 1, (seq * 7) % 1000 + 1, concat('thumb/', seq), seq % 90 + 10, seq % 80 + 5, 1000,
	lpad(seq, 13, '0'), repeat('words ', 60) from seq_1_to_1000;
create table customer (c_id int primary key auto_increment, c_uname varchar(20), c_fname varchar(20), c_discount double,
	c_since date, c_login datetime, key (c_uname)) engine=innodb;
insert into customer select seq, concat('user', seq), concat('First', seq % 97), seq % 50 / 100, curdate(), now()
	from seq_1_to_3000;
create table orders (o_id int primary key auto_increment, o_c_id int, o_date datetime, o_total double,
	o_status varchar(10), key (o_c_id)) engine=innodb;
insert into orders select seq, (seq * 17) % 3000 + 1, now(), seq % 300, 'shipped' from seq_1_to_9000;
create table order_line (ol_o_id int, ol_id int, ol_i_id int, ol_qty int, primary key (ol_o_id, ol_id), key (ol_i_id))
	engine=innodb;
insert into order_line select (seq - 1) div 3 + 1, seq % 3, (seq * seq * 13) % 1000 + 1, seq % 5 + 1 from seq_1_to_27000;
create table cc_xacts (cx_o_id int primary key, cx_type varchar(10), cx_amount double, cx_date datetime) engine=innodb;
create table cart (sc_id int primary key auto_increment, sc_date datetime) engine=innodb;
insert into cart select seq, now() from seq_1_to_500;
create table cart_line (scl_sc_id int, scl_i_id int, scl_qty int, primary key (scl_sc_id, scl_i_id)) engine=innodb;
insert into cart_line select seq, seq * 2 % 1000 + 1, 1 from seq_1_to_500;
